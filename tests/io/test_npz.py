import io
import zipfile

import numpy as np
import pytest

from jaxdyn.io._npz import read_npz


def npy(array):
    """The array as the content of an .npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def packed(path, content, way=zipfile.ZIP_DEFLATED):
    """An NPZ file that holds the content as its array q."""
    with zipfile.ZipFile(path, "w", way) as file:
        file.writestr("q.npy", content)
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_of_numbers_and_text_are_read(save, tmp_path):
    arrays = dict(
        a=np.arange(6.0).reshape(2, 3),
        b=np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
        text=np.array("a text"),
        empty=np.zeros((0, 3)),
        other=np.arange(3, dtype=">f8"),
    )
    save(tmp_path / "a.npz", **arrays)
    found = read_npz(tmp_path / "a.npz", "file")
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype.newbyteorder("=")


def test_every_damaged_byte_is_one_clear_error(tmp_path, rng):
    """Or plays no role, as the date of an array does not."""
    path = tmp_path / "a.npz"
    np.savez_compressed(path, q=rng.normal(size=(20, 2)), text=np.array("abc"))
    good, want = path.read_bytes(), read_npz(path, "file")
    damaged = [good[:n] for n in rng.integers(0, len(good), 50)]
    for place, value in rng.integers(0, (len(good), 256), (300, 2)):
        damaged.append(good[:place] + bytes([value]) + good[place + 1 :])
    errors = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            found = read_npz(path, "the file")
        except ValueError as error:
            errors += 1
            assert str(error).startswith("the file")
        else:
            for name, array in found.items():
                same = [x for x in want.values() if x.shape == array.shape]
                np.testing.assert_array_equal(array, same[0], err_msg=name)
    assert errors > 200


HEADERS = [
    (b"(3, 2)", b"(9, 2)"),  # more than there is
    (b"(3, 2)", b"(-3,2)"),
    (b"(3, 2)", b"(((((("),
    (b"(3, 2), }            ", b"(3000000000, 30000)} "),  # 7e14 bytes
    (b"'<f8'", b"'|O8'"),
    (b"'<f8'", b"'<c8'"),
    (b"\x01\x00", b"\x03\x00"),
]


@pytest.mark.parametrize("old, new", HEADERS, ids=[new.decode() for _, new in HEADERS])
def test_header_that_does_not_fit_is_an_error(old, new, tmp_path):
    content = npy(np.zeros((3, 2)))
    assert content.count(old) == 1
    with pytest.raises(ValueError, match="file: 'q' is damaged, or not an array of"):
        read_npz(packed(tmp_path / "a.npz", content.replace(old, new)), "file")


@pytest.mark.parametrize("way", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_compression_that_numpy_does_not_write_is_an_error(way, tmp_path):
    path = packed(tmp_path / "a.npz", npy(np.zeros(3)), way)
    with pytest.raises(ValueError, match=f"file: 'q' .*compression {way} is not NumP"):
        read_npz(path, "file")


def test_arrays_that_would_fill_the_memory_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.zeros(2**17), b=np.zeros(2**17))
    assert read_npz(path, "file")["a"].size == 2**17
    monkeypatch.setattr("jaxdyn.io._npz._ROOM", 2**20)
    with pytest.raises(ValueError, match=r"its arrays would fill 2097408, expected 1"):
        read_npz(path, "file")


def test_folder_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="file: cannot be read: Is a directory"):
        read_npz(tmp_path, "file")
