"""The names that every Python program has, listed here so that no answer depends on the running interpreter."""

from __future__ import annotations

# ruff: noqa: SIM905 - lists of names are read more easily without their quotes
from typing import Final

BUILTIN: Final = "<builtin>"
"""The module part of the dotted name of a builtin."""

BUILTINS: Final = frozenset(
    """
    ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError
    BrokenPipeError BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError
    ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning
    EnvironmentError Exception ExceptionGroup False FileExistsError FileNotFoundError FloatingPointError
    FutureWarning GeneratorExit IOError ImportError ImportWarning IndentationError IndexError InterruptedError
    IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError None
    NotADirectoryError NotImplemented NotImplementedError OSError OverflowError PendingDeprecationWarning
    PermissionError ProcessLookupError PythonFinalizationError RecursionError ReferenceError ResourceWarning
    RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError
    SystemExit TabError TimeoutError True TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError
    UnicodeError UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning WindowsError
    ZeroDivisionError __build_class__ __debug__ __import__ abs aiter all anext any ascii bin bool breakpoint
    bytearray bytes callable chr classmethod compile complex copyright credits delattr dict dir divmod
    enumerate eval exec exit filter float format frozenset getattr globals hasattr hash help hex id input int
    isinstance issubclass iter len license list locals map max memoryview min next object oct open ord pow
    print property quit range repr reversed round set setattr slice sorted staticmethod str sum super tuple
    type vars zip
    """.split()
)

OBJECT_MEMBERS: Final = frozenset(
    """
    __class__ __delattr__ __dir__ __doc__ __eq__ __format__ __ge__ __getattribute__ __getstate__ __gt__
    __hash__ __init__ __init_subclass__ __le__ __lt__ __ne__ __new__ __reduce__ __reduce_ex__ __repr__
    __setattr__ __sizeof__ __str__ __subclasshook__
    """.split()
)

MODULE_MEMBERS: Final = frozenset(
    """
    __annotations__ __builtins__ __dict__ __doc__ __file__ __loader__ __name__ __package__ __path__ __spec__
    __class__ __module__ __qualname__
    """.split()
)
"""Names that the interpreter puts into every module or class body."""

LOWERCASE_CLASSES: Final = frozenset(
    """
    <builtin>.bool <builtin>.bytearray <builtin>.bytes <builtin>.complex <builtin>.dict <builtin>.enumerate
    <builtin>.filter <builtin>.float <builtin>.frozenset <builtin>.int <builtin>.list <builtin>.map
    <builtin>.memoryview <builtin>.object <builtin>.range <builtin>.reversed <builtin>.set <builtin>.slice
    <builtin>.str <builtin>.tuple <builtin>.zip array.array collections.defaultdict collections.deque
    datetime.date datetime.datetime datetime.time datetime.timedelta functools.partial itertools.chain
    itertools.count itertools.cycle itertools.groupby itertools.islice threading.local
    """.split()
)
"""Classes outside the repository whose name does not look like one."""
