"""XML from a file or a text, whatever the robot language."""

import os
import xml.etree.ElementTree as ET
from pathlib import Path
from xml.parsers.expat import ErrorString

from jaxdyn.io._files import content

_MARK = "\ufeff"  # a byte-order mark, which some editors put before the text


def path_of(source: str | os.PathLike[str]) -> Path | None:
    """The path that a source is, or None if it is the text itself.

    A text is a str whose first character, after white space and a byte-order mark, is
    "<".
    """
    if not isinstance(source, str | os.PathLike) or not os.fspath(source):
        raise ValueError(
            f"the source is {source!r}, expected a path, or a text that starts with <."
        )
    is_text = isinstance(source, str) and _bare(source).startswith("<")
    return None if is_text else Path(source)


def read_xml(
    source: str | os.PathLike[str], language: str, tags: tuple[str, ...]
) -> ET.Element:
    """The root element of a file or text, which must have one of the tags."""
    path = path_of(source)
    if path is None:
        where, text = f"{language} text", _bare(str(source))
        skipped = str(source).removesuffix(text).count("\n")
    else:
        where, text, skipped = str(path), content(path, str(path)), 0
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise ValueError(
            f"{where}, line {error.position[0] + skipped}: {ErrorString(error.code)}: "
            "expected well-formed XML, correct that line or the element before it."
        ) from error
    except (LookupError, ValueError) as error:  # of its encoding
        raise ValueError(
            f"{where}: {error}: expected XML in an encoding that is known, such as "
            "UTF-8: save it as that."
        ) from error
    if root.tag not in tags:
        raise ValueError(
            f"{where}: the root element is <{root.tag}>, expected "
            f"{' or '.join(f'<{tag}>' for tag in tags)}: give a source in {language}."
        )
    return root


def _bare(text: str) -> str:
    """The text without what may stand before its first element."""
    return text.lstrip().removeprefix(_MARK).lstrip()
