from __future__ import annotations

import json
import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_app.wire import BlockingChannel, Channel, Frames, FrameTooLarge, WireError, pack


@given(st.lists(st.dictionaries(st.text(), st.integers()), max_size=5), st.data())
def test_messages_survive_any_cutting(messages: list[dict[str, int]], data: st.DataObject) -> None:
    stream = b"".join(pack(message) for message in messages)
    frames, found = Frames(), []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        found += frames.feed(stream[:cut])
        stream = stream[cut:]
    assert found == messages
    assert not frames.partial


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_JSON)
def test_a_message_is_written_as_the_standard_encoder_writes_it(message: object) -> None:
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    assert pack(message)[4:].decode("utf-8", "surrogatepass") == text


@pytest.mark.parametrize(("message", "kind"), [({"a": float("nan")}, ValueError), ([object()], TypeError)])
def test_what_json_does_not_have_is_no_message(message: object, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        pack(message)


def test_a_message_beyond_the_limit_is_refused_before_it_is_sent() -> None:
    with pytest.raises(FrameTooLarge, match=r"'set_xcom' is 0\.0 MB, the limit is 0\.0 MB"):
        pack({"op": "set_xcom", "value": "x" * 100}, max_bytes=50)


def test_a_frame_that_announces_too_much_is_refused_at_once() -> None:
    with pytest.raises(FrameTooLarge):
        Frames(max_bytes=10).feed(b"\x00\x00\x00\xff")


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(WireError, match="not UTF-8 JSON"):
        Frames().feed(b"\x00\x00\x00\x02{]")


def test_a_full_socket_keeps_the_rest_for_later_and_nothing_blocks() -> None:
    ours, theirs = socket.socketpair()
    channel, reader = Channel(ours), Channel(theirs)
    message = {"op": "start", "conf": "x" * 3_000_000}
    channel.send(message)
    assert channel.wants_write
    received: list[object] = []
    while not received:
        received += reader.receive()
        channel.flush()
    assert received == [message]
    assert not channel.wants_write
    channel.close()
    assert reader.receive() == []
    assert reader.closed


def test_file_descriptors_travel_with_their_message() -> None:
    ours, theirs = socket.socketpair()
    channel, reader = Channel(ours), Channel(theirs, max_fds=4)
    read, write = os.pipe()
    channel.send({"op": "fork"}, (write,), close_fds=True)
    assert reader.receive() == [{"op": "fork"}]
    (received,) = reader.take_fds(1)
    os.write(received, b"hello")
    os.close(received)
    assert os.read(read, 10) == b"hello"
    assert os.read(read, 10) == b""  # our own copy of the write end was closed
    os.close(read)
    channel.close()
    reader.close()


def test_a_blocking_reader_hears_the_end() -> None:
    ours, theirs = socket.socketpair()
    reader = BlockingChannel(theirs)
    ours.sendall(pack({"n": 1}) + pack({"n": 2}))
    ours.close()
    assert [reader.receive(), reader.receive()] == [{"n": 1}, {"n": 2}]
    with pytest.raises(EOFError, match="closed the connection"):
        reader.receive()
    theirs.close()
