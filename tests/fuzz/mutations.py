"""Making wrong inputs out of right ones."""

import gzip
import re
import zlib
from random import Random

import pyarrow as pa

NASTY = (
    *(b"", b"\x00", b"\n", b"\r", b"\r\n", b"\t", b" ", b"  ", b"\x1a", b"\x0b", b"\x7f", b"\x80"),
    *(b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3\xa9", b"\xe2\x80\xa8"),
    *(b"#", b":", b"=", b"-", b"+", b".", b"e", b"E", b",", b'"', b"'", b"\\", b"{", b"}", b"["),
    *(b"]", b"qid:", b"qid", b"QID:7", b"#docid = ", b"# docid=", b"docid", b"NULL", b"null"),
    *(b"nan", b"NaN", b"inf", b"-Infinity", b"true", b"0", b"1", b"-1", b"-0", b"00", b"1:", b":1"),
    *(b"0:1", b"1:1", b"9999:1", b"10000:1", b"10001:1", b"1e", b"1e5", b"1e-5", b"0x1F", b"1_0"),
    *(b"1e38", b"3.4028235e38", b"3.4028236e38", b"1e39", b"1e308", b"1e309", b"1e999", b"1e-45"),
    *(b"7e-46", b"5e-324", b"1e-400", b"0e999999999999999999999", b"1e0000000000000000001"),
    *(b"2147483648", b"4294967296", b"9007199254740993", b"9223372036854775807"),
    *(b"9223372036854775808", b"18446744073709551616", b"-9223372036854775809"),
    *(b"999999999999999", b"1000000000000000", b"123456789012345678", b"1234567890123456789"),
    *(b"0.1234567890123456789", b"1.00000005960464477539", b"0." + b"0" * 40 + b"1", b"9" * 60),
    *(b"1" + b"0" * 400, b"." + b"9" * 400, b"[" * 300, b'{"x":' * 50, b"\xc3\xa9" * 30),
    *(b"BZh9", b"PK\x03\x04", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1", b"../x", b"/etc/passwd"),
)
"""Tokens that parsers get wrong."""

_TOKENS = re.compile(rb"[ \t\r\n]+|[:,{}\[\]]|[^ \t\r\n:,{}\[\]]+")
_MOST = 20_000


def mutated(random: Random, seeds: list[bytes]) -> bytes:
    """One input: a seed changed in one to six ways, and packed now and then."""
    text = random.choice(seeds)
    for _ in range(random.choice((0, 1, 1, 1, 2, 3, 6))):
        text = random.choice(_CHANGES)(random, text, seeds)[:_MOST]
    if random.random() < 0.15:
        text = random.choice((_gzip, _zstd, _member))(text)
        if random.random() < 0.5:
            text = random.choice((_flip, _cut, _insert, _splice))(random, text, seeds)
    return text


def _flip(random: Random, text: bytes, _seeds: list[bytes]) -> bytes:
    changed = bytearray(text)
    for _ in range(random.choice((1, 1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _set(random: Random, text: bytes, _seeds: list[bytes]) -> bytes:
    changed = bytearray(text)
    for _ in range(random.choice((1, 1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] = random.choice(
                b"\x00\n\r\t #:.-+e0919\x80\xff"
            )
    return bytes(changed)


def _cut(random: Random, text: bytes, _seeds: list[bytes]) -> bytes:
    return text[: random.randint(0, len(text))]


def _remove(random: Random, text: bytes, _seeds: list[bytes]) -> bytes:
    begin = random.randint(0, len(text))
    return text[:begin] + text[begin + random.choice((1, 2, 8, 64)) :]


def _insert(random: Random, text: bytes, _seeds: list[bytes]) -> bytes:
    place = random.randint(0, len(text))
    token = (
        random.choice(NASTY) if random.random() < 0.8 else random.randbytes(random.randint(1, 9))
    )
    return text[:place] + token + text[place:]


def _repeat(random: Random, text: bytes, _seeds: list[bytes]) -> bytes:
    begin = random.randint(0, len(text))
    end = min(len(text), begin + random.choice((1, 8, 64, 512)))
    return text[:end] + text[begin:end] * random.choice((1, 2, 30)) + text[end:]


def _splice(random: Random, text: bytes, seeds: list[bytes]) -> bytes:
    other = random.choice(seeds)
    return text[: random.randint(0, len(text))] + other[random.randint(0, len(other)) :]


def _swap_tokens(random: Random, text: bytes, _seeds: list[bytes]) -> bytes:
    tokens = _TOKENS.findall(text)
    if len(tokens) > 1:
        one, other = random.randrange(len(tokens)), random.randrange(len(tokens))
        tokens[one], tokens[other] = tokens[other], tokens[one]
    return b"".join(tokens)


def _change_token(random: Random, text: bytes, seeds: list[bytes]) -> bytes:
    tokens = _TOKENS.findall(text)
    if tokens:
        others = _TOKENS.findall(random.choice(seeds)) or [b""]
        place = random.randrange(len(tokens))
        tokens[place] = random.choice(NASTY) if random.random() < 0.7 else random.choice(others)
    return b"".join(tokens)


def _number_token(random: Random, text: bytes, _seeds: list[bytes]) -> bytes:
    tokens = _TOKENS.findall(text)
    numbers = [place for place, token in enumerate(tokens) if token[-1:].isdigit()]
    if numbers:
        size = random.choice((1, 3, 8, 9, 16, 17, 18, 19, 20, 24, 40))
        digits = bytes(random.choice(b"0123456789") for _ in range(size))
        point = random.randint(0, size)
        form = random.choice((b"%s", b"-%s", b"%s.", b".%s", b"%se-30", b"%sE+12", b"%se-290"))
        text_of = digits[:point] + b"." + digits[point:] if random.random() < 0.5 else digits
        tokens[random.choice(numbers)] = form % text_of
    return b"".join(tokens)


def _shuffle_lines(random: Random, text: bytes, _seeds: list[bytes]) -> bytes:
    lines = text.splitlines(keepends=True)
    random.shuffle(lines)
    return b"".join(lines)


def _recode(random: Random, text: bytes, _seeds: list[bytes]) -> bytes:
    encoding = random.choice(("utf-16", "utf-16-le", "latin-1", "utf-8-sig", "cp500"))
    return text.decode("utf-8", "replace").encode(encoding, "replace")


def _gzip(text: bytes) -> bytes:
    return gzip.compress(text, mtime=0)  # else the second of the day is part of it


def _zstd(text: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(text)
    return sink.getvalue().to_pybytes()


def _member(text: bytes) -> bytes:
    """Two gzip members one after the other, the border in the middle of the text."""
    half = len(text) // 2
    pack = zlib.compressobj(1, zlib.DEFLATED, 31)
    return pack.compress(text[:half]) + pack.flush() + _gzip(text[half:])


_CHANGES = (
    *(_flip, _set, _cut, _remove, _insert, _insert, _repeat, _splice),
    *(_swap_tokens, _change_token, _change_token, _number_token, _number_token),
    *(_shuffle_lines, _recode),
)
