"""XML from a file or a text, whatever the robot language."""

import os
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from xml.parsers import expat

from jaxdyn.io._files import content

# what editors leave before an XML declaration: byte-order marks, white space, comments
_BEFORE = re.compile(rb"(?:\xef\xbb\xbf|\s|<!--.*?-->)*", re.DOTALL)


def path_of(source: str | os.PathLike[str], starts: str = "<") -> Path | None:
    """The path that a source is, or None if it is the text itself.

    A text is a str whose first character, after white space and a byte-order mark, is
    one of `starts`.
    """
    if not isinstance(source, str | os.PathLike) or not os.fspath(source):
        raise ValueError(
            f"the source is {source!r}, expected a path, or a text that starts with "
            f"{' or '.join(starts)}."
        )
    is_text = isinstance(source, str) and _bare(source).startswith(tuple(starts))
    return None if is_text else Path(source)


def _bare(text: str) -> str:
    return text.lstrip().removeprefix("\ufeff").lstrip()


def read_xml(
    source: str | os.PathLike[str], language: str, tags: tuple[str, ...]
) -> ET.Element:
    """The root element of a file or text, which must have one of the tags.

    Names keep their namespace prefixes, which need not be declared.
    """
    path = path_of(source)
    where = f"{language} text" if path is None else str(path)
    data = content(path, where) if path else str(source).encode(errors="surrogatepass")
    before = _BEFORE.match(data)
    bare = data[before.end() :] if before else data
    builder = ET.TreeBuilder()
    parser = expat.ParserCreate("utf-8" if path is None else None)
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(bare, True)
    except expat.ExpatError as error:
        line = error.lineno + data.count(b"\n") - bare.count(b"\n")
        raise ValueError(
            f"{where}, line {line}: {expat.ErrorString(error.code)}: expected "
            "well-formed XML, correct that line or the element before it."
        ) from error
    except (LookupError, ValueError) as error:  # of its encoding
        raise ValueError(
            f"{where}: {error}: expected XML in an encoding that is known, such as "
            "UTF-8: save it as that."
        ) from error
    root = builder.close()
    if root.tag not in tags:
        raise ValueError(
            f"{where}: the root element is <{root.tag}>, expected "
            f"{' or '.join(f'<{tag}>' for tag in tags)}: give a source in {language}."
        )
    return root
