"""A terminal for commands, and what a person sees on it."""

import fcntl
import os
import pty
import re
import signal
import struct
import termios

from tests.zygote import ROOT, Forked

COLUMNS, LINES = 80, 60
# Stands for a minus while others are masked.
_BELOW = "\N{MINUS SIGN}"
COLORS = re.compile(r"\x1b\[(?:[\d;]*;)?(?:3[0-8]|4[0-8]|9\d)(?:;[\d;]*)?m")
_TOKEN = re.compile(r"\x1b\[([\d;?]*)([A-Za-z])|(\r\n|\r|\n)|([^\x1b\r\n]+)")


class Terminal:
    """Runs `keras-dml` in a pseudo-terminal.

    Args:
        *arguments: Words after `keras-dml`.
        cwd: The folder that it runs in.
        columns: Integer, the width. Defaults to `80`.
        **environment: Variables beside the plain ones.

    Attributes:
        text: What it wrote, with control sequences.
        code: Its exit code, after `read`.
    """

    def __init__(self, *arguments, cwd, columns=COLUMNS, **environment):
        self._own, other = pty.openpty()
        size = struct.pack("HHHH", LINES, columns, 0, 0)
        fcntl.ioctl(other, termios.TIOCSWINSZ, size)
        self.text = ""
        self.code = None
        with os.fdopen(other, "wb", buffering=0) as file:
            self._process = Forked(
                *("keras_dml", *arguments),
                **dict.fromkeys(("stdin", "stdout", "stderr"), file),
                cwd=cwd,
                env={**plain_environment(), "TERM": "xterm", **environment},
            )

    def read(self, until=None):
        """Reads until a pattern was written, or to the end of the command."""
        while until is None or not re.search(until, self.text):
            try:
                part = os.read(self._own, 65536)
            except OSError:  # Linux says so that the other end is closed.
                part = b""
            if not part:
                self.code = self._process.wait()
                os.close(self._own)
                break
            self.text += part.decode()
        return self.text

    def press_ctrl_c(self):
        """Does what a terminal does at Ctrl-C."""
        self._process.send_signal(signal.SIGINT)


def plain_environment():
    """Returns the environment without settings of colors and sizes."""
    ours = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TERM", "PYTEST")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    # Other processors have other names, and other numbers of cores.
    return {**kept, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}


def visible(text):
    """Returns what a terminal shows in the end, for what `rich` writes."""
    lines, row, column = [""], 0, 0
    for codes, name, ends, words in _TOKEN.findall(text):
        if words:
            line = lines[row].ljust(column)
            end = column + len(words)
            lines[row] = line[:column] + words + line[end:]
            column = end
        elif ends:
            column = 0
            row += ends != "\r"
            lines += [""] * (row + 1 - len(lines))
        elif name == "A":
            row = max(0, row - int(codes or 1))
        elif name == "K":
            lines[row] = "" if codes == "2" else lines[row][:column]
        elif name == "m" or codes.startswith("?"):
            pass
        else:
            raise AssertionError(f"unknown: {codes}{name}")
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


def masked(text):
    """Replaces digits, times and the device, which differ between machines.

    Also signs, whether a match was near enough, and verdicts. A gap from the
    highest arm is below zero, and so is the lower end of its interval.
    """
    text = re.sub(r"Device +.*(?:\n {10}.*)*", "Device    DEVICE", text)
    text = re.sub(r"(milliseconds .*?│).*", r"\1 TIMES", text)
    text = re.sub(r"│ (yes|no ) ", "│ Y/N ", text)
    text = re.sub(r"│ (open|worse) +│\n", "│ VERDICT │\n", text)
    text = re.sub(r": (no match; )?nearest first", ": FOUND", text)
    text = re.sub(
        r"(?ms)^[\w ]+ (leads|is best) by MAP@R.*?otherwise\.",
        "CONCLUSION",
        text,
    )
    gap = r"│ +-\d\.\d{3} │ +-\d\.\d{3} to"
    text = re.sub(gap, lambda found: found[0].replace("-", _BELOW), text)
    text = re.sub(r"(?<!\w)[+-](?=\d)", "±", text).replace(_BELOW, "-")
    text = re.sub(r"\b\d+\.\d %", "##.# %", text)
    text = text.replace("% less)", "% more)")
    text = re.sub(r"\b\d+\s(h|min|s)\b(\s\d+\s(min|s)\b)?", "TIME", text)
    # A long time wraps the line.
    text = re.sub(r"about\s+TIME\s+to\s+go", "about TIME to go", text)
    lines = (line.rstrip() for line in text.splitlines())
    return re.sub(r"\d", "#", "\n".join(lines)) + "\n"
