import os
import tempfile
import unittest
from array import array

from keel import _frames as frames


class Frames(unittest.TestCase):
    def setUp(self):
        self.read_end, self.write_end = os.pipe()
        lock = tempfile.TemporaryFile()
        self.addCleanup(lock.close)
        self.busy = array("d", [0.0] * 4)
        self.channel = frames.Channel(self.read_end, self.write_end, self.busy, lock.fileno())

    def test_a_frame_comes_whole_and_then_the_next(self):
        self.channel.write(frames.STEP, 7, b"abc")
        self.channel.write(frames.RESET, 8, b"")
        with self.assertRaisesRegex(frames.FrameError, "too many"):
            self.channel.read()

    def test_one_frame(self):
        self.channel.write(frames.STEP, 7, b"abc")
        what, sequence, payload = self.channel.read()
        self.assertEqual((what, sequence, bytes(payload)), (frames.STEP, 7, b"abc"))
        self.assertGreater(self.busy[frames.ASKED], 0)
        self.channel.write(frames.STEP, 7, b"")
        self.assertEqual(self.busy[frames.ASKED], 0)

    def test_other_bytes_are_no_frame(self):
        os.write(self.write_end, b"GET / HTTP/1.1\r\n\r\n")
        with self.assertRaisesRegex(frames.FrameError, "begins with"):
            self.channel.read()

    def test_a_length_that_cannot_be_is_refused_before_it_is_believed(self):
        os.write(self.write_end, frames.HEADER.pack(frames.MAGIC, frames.STEP, 1, 2**31))
        with self.assertRaisesRegex(frames.FrameError, "2147483648 bytes"):
            self.channel.read()

    def test_the_end_is_the_end(self):
        os.close(self.write_end)
        with self.assertRaises(frames.Closed):
            self.channel.read()


class Package(unittest.TestCase):
    def test_names_are_loaded_when_they_are_asked_for(self):
        import keel

        self.assertEqual(keel.spaces.__name__, "keel.spaces")
        with self.assertRaisesRegex(AttributeError, "no attribute 'nothing'"):
            keel.nothing
