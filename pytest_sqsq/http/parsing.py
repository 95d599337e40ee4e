"""HTTP/1.1 framing, apart from sockets: octets in, heads and bodies out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pytest_sqsq.errors import MalformedInput, RequestEntityTooLarge

HEAD_BYTES = 64 * 1024

# A full batch is 1 MiB; in the Query protocol each byte may be written as three (%41), and a
# JSON text as six (\u0041).  Twice that is beyond any client's request.
BODY_BYTES = 16 * 1024 * 1024

END_OF_HEAD = b"\r\n\r\n"

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VERSION = re.compile(r"HTTP/1\.[0-9]")
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")
_CHUNK_LINE_BYTES = 4096


@dataclass(slots=True)
class Head:
    """The request line and the headers of one request.

    Names of headers are in lower case; those sent more than once are joined by commas.
    ``content_length`` is 0 for a request without a body and for a chunked one.
    """

    method: str
    path: str
    query_string: str
    headers: dict[str, str]
    keep_alive: bool
    is_http_1_0: bool
    content_length: int
    chunked: bool
    expects_continue: bool


def parse_head(octets: bytes) -> Head:
    """The head in ``octets``, which end before its empty line.

    Raises :class:`MalformedInput` for anything whose framing could be read in two ways, and
    :class:`RequestEntityTooLarge` for a body announced beyond the limit.
    """
    text = octets.decode("latin-1")
    lines = text.split("\r\n")
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1 or "\0" in text:
        raise MalformedInput("The request head holds a bare CR, a bare LF or a NUL.")
    method, target, version = _request_line(lines[0])
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, value = _header(line)
        if name in headers:
            value = _joined(name, headers[name], value)
        headers[name] = value
    path, _, query_string = target.partition("?")
    chunked = _is_chunked(headers)
    is_http_1_0 = version == "HTTP/1.0"
    return Head(
        method,
        path if path.startswith("/") else _origin_form(path),
        query_string,
        headers,
        _keeps_alive(headers.get("connection"), is_http_1_0),
        is_http_1_0,
        0 if chunked else _content_length(headers.get("content-length")),
        chunked,
        _expects_continue(headers.get("expect"), is_http_1_0),
    )


@lru_cache(maxsize=512)
def _header(line: str) -> tuple[str, str]:
    # Cached: a client sends most of its header lines again and again.
    name, colon, value = line.partition(":")
    if not colon or not _TOKEN.fullmatch(name):
        raise MalformedInput("The request holds a malformed header line.")
    return name.lower(), value.strip(" \t")


@lru_cache(maxsize=512)
def _request_line(line: str) -> tuple[str, str, str]:
    parts = line.split(" ")
    if len(parts) != 3 or not _TOKEN.fullmatch(parts[0]) or not parts[1]:
        raise MalformedInput("The request line is malformed.")
    if not _VERSION.fullmatch(parts[2]):
        raise MalformedInput("Only HTTP/1.1 and HTTP/1.0 are spoken here.")
    return parts[0], parts[1], parts[2]


def _joined(name: str, first: str, second: str) -> str:
    if name == "host":
        raise MalformedInput("The request names two hosts.")
    return f"{first}, {second}"


def _origin_form(target: str) -> str:
    """The path of a target in absolute form, as a client sends it through a proxy."""
    _, scheme, rest = target.partition("://")
    return "/" + rest.partition("/")[2] if scheme else target


def _keeps_alive(connection: str | None, is_http_1_0: bool) -> bool:
    if connection is None:
        return not is_http_1_0
    options = {option.strip() for option in connection.lower().split(",")}
    return "keep-alive" in options if is_http_1_0 else "close" not in options


def _is_chunked(headers: dict[str, str]) -> bool:
    encoding = headers.get("transfer-encoding")
    if encoding is None:
        return False
    if "content-length" in headers:
        raise MalformedInput("The request has both Content-Length and Transfer-Encoding.")
    if encoding.lower() != "chunked":
        raise MalformedInput("The only transfer encoding understood is chunked.")
    return True


def _content_length(text: str | None) -> int:
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit()):
        # Sent twice with the same value is harmless.
        lengths = {length.strip() for length in text.split(",")}
        text = lengths.pop()
        if lengths or not (text.isascii() and text.isdigit()):
            raise MalformedInput("The Content-Length is not one number.")
    if len(text) > 18 or int(text) > BODY_BYTES:
        raise RequestEntityTooLarge(_too_large_text())
    return int(text)


def _expects_continue(expect: str | None, is_http_1_0: bool) -> bool:
    if expect is None or is_http_1_0:
        return False
    if expect.lower() != "100-continue":
        raise MalformedInput("The only expectation understood is 100-continue.")
    return True


def _too_large_text() -> str:
    return f"The request body is larger than {BODY_BYTES} bytes."


class ChunkedBody:
    """A body in chunks, decoded as it arrives; extensions and trailers are dropped.

    ``feed`` takes octets and returns whether the body is complete; ``body`` and ``rest``, the
    octets after it, are valid then.  Raises :class:`MalformedInput` and
    :class:`RequestEntityTooLarge`.
    """

    def __init__(self) -> None:
        self.body = b""
        self.rest = b""
        self._buffer = bytearray()
        self._content = bytearray()
        self._chunk: int | None = None  # size of the chunk whose data comes next
        self._in_trailers = False
        self._trailer_bytes = 0

    def feed(self, octets: bytes) -> bool:
        """Take the next octets; whether the body is complete.  O(octets) amortised."""
        self._buffer += octets
        while True:
            if self._in_trailers:
                done = self._skip_trailer()
                if done is not None:
                    return done
            elif self._chunk is not None:
                if not self._take_data(self._chunk):
                    return False
            elif not self._take_size():
                return False

    def _take_size(self) -> bool:
        line = self._take_line()
        if line is None:
            return False
        size = line.partition(b";")[0].strip(b" \t")
        if not _CHUNK_SIZE.fullmatch(size):
            raise MalformedInput("A chunk of the body has no size.")
        self._chunk = int(size, 16)
        if len(self._content) + self._chunk > BODY_BYTES:
            raise RequestEntityTooLarge(_too_large_text())
        if self._chunk == 0:
            self._in_trailers = True
        return True

    def _take_data(self, size: int) -> bool:
        if len(self._buffer) < size + 2:
            return False
        if self._buffer[size : size + 2] != b"\r\n":
            raise MalformedInput("A chunk of the body is longer than its size.")
        self._content += memoryview(self._buffer)[:size]
        del self._buffer[: size + 2]
        self._chunk = None
        return True

    def _skip_trailer(self) -> bool | None:
        line = self._take_line()
        if line is None:
            return False
        self._trailer_bytes += len(line)
        if self._trailer_bytes > HEAD_BYTES:
            raise MalformedInput("The trailers of the body are too long.")
        if line:
            return None
        self.body = bytes(self._content)
        self.rest = bytes(self._buffer)
        return True

    def _take_line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n")
        if end < 0 and len(self._buffer) <= _CHUNK_LINE_BYTES:
            return None
        if end < 0 or end > _CHUNK_LINE_BYTES:
            raise MalformedInput("A line between the chunks of the body is too long.")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line
