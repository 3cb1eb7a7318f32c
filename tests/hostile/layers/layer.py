"""One layer that can be taken out."""
import typing


class Layer(typing.NamedTuple):
    row: str
    what: str       # the layer, in words
    edits: list     # of (file, its text as it is, as it becomes); the text stands there once
    test: str       # ctest's name
    cases: list     # that have to fail
