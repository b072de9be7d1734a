"""Opening files: compression by contents, encodings, damaged and missing files, long lines."""

import gzip
import io
import os
import stat
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from podium.data import Dataset, files, read_letor, read_qrels, write_letor
from podium.data.files import chunk_loaders, numbered_lines, open_write, read_bounded
from podium.data.formats.letor import iter_letor
from podium.errors import DataError
from tests.data.strategies import assert_same

TEXT = b"2 qid:1 1:0.5 2:7 #docid = a\n0 qid:1 2:1\n1 qid:2 1:3 #docid = c\n"
EXPECTED = Dataset.from_arrays(
    [[0.5, 7], [0, 1], [3, 0]], [2, 0, 1], qid=[1, 1, 2], document_ids=["a", None, "c"]
)


def zstd(text: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(text)
    return sink.getvalue().to_pybytes()


PACKERS = {"plain": bytes, "gzip": gzip.compress, "zstd": zstd}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "train.txt"


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_contents_tell_the_compression(path: Path, pack) -> None:
    path.write_bytes(pack(TEXT))
    assert_same(read_letor(path), EXPECTED)
    assert_same(read_letor(io.BytesIO(pack(TEXT))), EXPECTED)
    with path.open("rb") as stream:
        assert_same(read_letor(stream), EXPECTED)


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_parts_packed_one_after_the_other(path: Path, pack) -> None:
    lines = TEXT.splitlines(keepends=True)
    path.write_bytes(
        pack(b"") + pack(lines[0][:9]) + pack(lines[0][9:]) + pack(b"".join(lines[1:]))
    )
    assert_same(read_letor(path), EXPECTED)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_lying_name(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"train.txt{suffix}"
    path.write_bytes(TEXT)
    with pytest.raises(DataError, match="suffix but other contents") as caught:
        read_letor(path)
    assert caught.value.path == str(path)
    assert "Rename it" in caught.value.hint


def test_an_unpacked_stream_may_have_a_packed_name(tmp_path: Path) -> None:
    path = tmp_path / "train.txt.gz"
    path.write_bytes(gzip.compress(TEXT))
    with gzip.open(path) as stream:
        assert_same(read_letor(stream), EXPECTED)


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_packed_files_cut_short_anywhere(path: Path, pack) -> None:
    whole = pack(TEXT * 200)
    for size in (*range(len(whole)), -1):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError) as caught:
            read_letor(path)
        assert caught.value.path == str(path)
        assert caught.value.hint


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
@pytest.mark.parametrize("garbage", [b"garbage", b"\0" * 64, b"\x1f\x8b", b"1 qid:3 1:1\n"])
def test_garbage_after_the_end_of_packed_files(path: Path, pack, garbage: bytes) -> None:
    path.write_bytes(pack(TEXT) + garbage)
    with pytest.raises(DataError, match="cannot be read completely"):
        read_letor(path)


def test_a_wrong_checksum(path: Path) -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[-6] ^= 1
    path.write_bytes(packed)
    with pytest.raises(DataError, match="cannot be read completely"):
        read_letor(path)


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"BZh91AY&SY", "bzip2"),
        (b"\xfd7zXZ\x00", "xz"),
        (b"PK\x03\x04", "zip"),
        (TEXT.decode().encode("utf-16"), "UTF-16"),
        ("\ufeff1 qid".encode("utf-16-be"), "UTF-16"),
        (b"PAR1", "Parquet"),
    ],
)
def test_other_kinds_of_file_are_named(path: Path, start: bytes, kind: str) -> None:
    path.write_bytes(start)
    with pytest.raises(DataError, match=f"is {kind}"):
        read_letor(path)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_wide_encodings_without_a_mark_are_errors(path: Path, encoding: str) -> None:
    path.write_bytes(TEXT.decode().encode(encoding))
    for read in (read_letor, read_qrels):
        with pytest.raises(DataError):
            read(path)


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
def test_marks_and_line_ends(path: Path, pack, end: bytes, mark: bytes, last: bool) -> None:
    text = mark + TEXT.replace(b"\n", end)
    path.write_bytes(pack(text if last else text.removesuffix(end)))
    assert_same(read_letor(path), EXPECTED)
    assert_same(read_letor(io.BytesIO(path.read_bytes())), EXPECTED)


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
@pytest.mark.parametrize("text", [b"", b"\n", b" \r\n\t\n", b"\xef\xbb\xbf", b"# nothing\n"])
def test_files_without_a_document(path: Path, pack, text: bytes) -> None:
    path.write_bytes(pack(text))
    for read in (read_letor, lambda path: list(iter_letor(path))):
        with pytest.raises(DataError, match="has no documents") as caught:
            read(path)
        assert caught.value.path == str(path)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.txt: no such file"):
        read_letor(tmp_path / "absent.txt")
    with pytest.raises(DataError, match="is a folder"):
        read_letor(tmp_path)
    (tmp_path / "file").write_bytes(TEXT)
    with pytest.raises(DataError, match="no such file"):
        read_letor(tmp_path / "file" / "below")
    with pytest.raises(DataError, match="cannot be read"):
        read_letor(tmp_path / ("long" * 100))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_forbidden_files(path: Path) -> None:
    path.write_bytes(TEXT)
    path.chmod(0)
    with pytest.raises(DataError, match="Permission denied"):
        read_letor(path)
    path.parent.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(DataError, match="cannot be written"):
        write_letor(EXPECTED, path.with_name("other.txt"))
    path.parent.chmod(stat.S_IRWXU)


def test_a_file_that_is_removed_while_it_is_read(path: Path) -> None:
    path.write_bytes(TEXT)
    loaders = list(chunk_loaders(path))
    path.write_bytes(TEXT[:10])
    with pytest.raises(DataError, match="was truncated"):
        loaders[0]()
    path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        loaders[0]()


def test_named_pipes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(gzip.compress(TEXT)))
    writer.start()
    assert_same(read_letor(pipe), EXPECTED)
    writer.join()


class Trickle(io.RawIOBase):
    """A stream that gives a byte at a time, as a slow pipe does."""

    def __init__(self, text: bytes) -> None:
        self._rest = io.BytesIO(text)

    def read(self, size: int = -1) -> bytes:
        return self._rest.read(min(1, size) if size else 0)


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_streams_that_give_little_at_a_time(pack) -> None:
    assert_same(read_letor(Trickle(pack(TEXT))), EXPECTED)


def test_a_stream_that_does_not_wait_is_no_end_of_file() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.write(writing, TEXT[:-5])
    with (
        os.fdopen(writing, "wb"),
        os.fdopen(reading, "rb", buffering=0) as stream,
        pytest.raises(DataError, match="non-blocking"),
    ):
        read_letor(stream)


class Broken(io.RawIOBase):
    """A stream whose disk fails."""

    def read(self, _size: int = -1) -> bytes:
        raise OSError(5, "Input/output error")


def test_a_failing_disk_is_an_error_that_names_the_source() -> None:
    with pytest.raises(
        DataError, match=r"stream: cannot be read completely \(Input/output error\)"
    ):
        read_letor(Broken())


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_a_line_too_long(path: Path, pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 100_000)
    fits = b"1 qid:1 1:1 #" + b"x" * 99_000 + b"\n"
    path.write_bytes(pack(TEXT + fits + TEXT.replace(b"qid:", b"qid:9")))
    assert read_letor(path).rows == 7
    path.write_bytes(pack(TEXT + b"1 qid:1 1:1 #" + b"x" * 110_000 + b"\n" + TEXT))
    for source in (path, io.BytesIO(path.read_bytes())):
        with pytest.raises(DataError, match="a line is longer than"):
            read_letor(source)


def test_lines_are_numbered_across_chunks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [b"a", b"", b"bb", b"ccc\x0bd", b"e"]
    path.write_bytes(b"\n".join(lines))
    for size in range(1, 12):
        monkeypatch.setattr(files, "CHUNK_BYTES", size)
        assert list(numbered_lines(path)) == list(enumerate(lines, 1))


def test_progress_ends_at_the_size(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK_BYTES", 20)
    for pack in PACKERS.values():
        path.write_bytes(pack(TEXT))
        seen: list[tuple[int, int | None]] = []
        read_letor(path, progress=lambda done, total, seen=seen: seen.append((done, total)))
        size = path.stat().st_size
        assert seen[-1] == (size, size)
        assert seen == sorted(seen)
    seen = []
    read_letor(io.BytesIO(TEXT), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(TEXT), None)


def test_nothing_is_left_when_writing_fails(path: Path) -> None:
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), open_write(path) as write:
        write(b"half" * (1 // 0))
    assert path.read_bytes() == b"before"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("name", ["absent/out.txt", "file/out.txt", "folder", "long" * 100])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_targets_that_cannot_be_written(tmp_path: Path, name: str, suffix: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.gz").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match="cannot be written") as caught:
        write_letor(EXPECTED, tmp_path / f"{name}{suffix}")
    assert caught.value.hint
    assert sorted(tmp_path.rglob("*")) == before


def test_whole_files_are_read_up_to_a_size(tmp_path: Path) -> None:
    most = 1 << 20
    path = tmp_path / "a"
    path.write_bytes(b"x" * most)
    assert read_bounded(path, most) == b"x" * most
    path.write_bytes(b"x" * (most + 1))
    with pytest.raises(DataError, match=r"a: is larger than 1 MiB\. Check the path\."):
        read_bounded(path, most)
    with pytest.raises(DataError, match="larger than 1 MiB"):
        read_bounded("/dev/zero", most)
    with pytest.raises(DataError, match=r"absent: no such file\. Name another\."):
        read_bounded(tmp_path / "absent", most, hint="Name another.")
    with pytest.raises(DataError, match=r"cannot be read \(Is a directory\)"):
        read_bounded(tmp_path, most)
    reading, writing = os.pipe()
    os.write(writing, b"piped")
    os.close(writing)
    assert read_bounded(f"/dev/fd/{reading}", most) == b"piped"
    os.close(reading)
