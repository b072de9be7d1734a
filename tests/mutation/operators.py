"""Mutants of one source file: small changes of its text, each of which a test should notice."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property

_COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
    ast.MatMult: ("@", "*"),
}
_NAMES = {"min": "max", "minimum": "maximum", "any": "all", "argmin": "argmax"}
_NAMES |= {"zeros": "ones", "floor": "ceil", "cumsum": "cumprod", "left": "right"}
_SWAPPED = _NAMES | {new: old for old, new in _NAMES.items()}


@dataclass(frozen=True)
class Mutant:
    """A change of a source file.

    Attributes:
        file: The file, relative to the project's root.
        where: The function or class that holds the change, by its qualified name.
        line: The number of the first line that changes.
        last: The number of the last line that changes.
        operator: What kind of change it is.
        text: The whole text of the changed file.
        original: The whole text of the file as it is.
    """

    file: str
    where: str
    line: int
    last: int
    operator: str
    text: str
    original: str

    @property
    def before(self) -> str:
        """The lines that change, as they are."""
        return self._lines[0]

    @property
    def after(self) -> str:
        """The lines that change, as the mutant has them."""
        return self._lines[1]

    @property
    def diff(self) -> str:
        """The change as a difference of lines."""
        changed = [f"-{line}" for line in self.before.splitlines()]
        return "\n".join(changed + [f"+{line}" for line in self.after.splitlines()])

    @cached_property
    def _lines(self) -> tuple[str, str]:
        old, new = self.original.splitlines(), self.text.splitlines()
        while old and new and old[-1] == new[-1]:
            del old[-1], new[-1]
        same = next(
            (n for n, (one, other) in enumerate(zip(old, new, strict=False)) if one != other),
            min(len(old), len(new)),
        )
        before, after = ("\n".join(map(str.strip, lines[same:])) for lines in (old, new))
        return before, after


def mutants_of(file: str, text: str) -> list[Mutant]:
    """Every mutant of a file, in the order of its lines; none that leaves the code as it is."""
    tree = ast.parse(text)
    same = ast.dump(tree)
    finder = _Finder(text)
    finder.visit(tree)
    found = []
    for start, stop, new, where, operator in finder.changes:
        changed = finder.changed(start, stop, new)
        try:
            if ast.dump(ast.parse(changed)) == same:
                continue
        except SyntaxError:
            continue
        first, last = finder.line_of(start), finder.line_of(max(start, stop - 1))
        found.append(Mutant(file, where, first, last, operator, changed, text))
    return sorted(found, key=lambda mutant: (mutant.line, mutant.operator, mutant.text))


class _Finder(ast.NodeVisitor):
    """Collects changes as (first byte, byte after the last, new text, qualified name, kind)."""

    def __init__(self, text: str) -> None:
        self.changes: list[tuple[int, int, str, str, str]] = []
        self._source = text.encode()
        self._starts = [0]
        for line in self._source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._names: list[str] = []

    def changed(self, start: int, stop: int, new: str) -> str:
        return (self._source[:start] + new.encode() + self._source[stop:]).decode()

    def line_of(self, place: int) -> int:
        return sum(start <= place for start in self._starts)

    # What is left alone: annotations, decorators, imports, docstrings, and the words of errors.

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._names.append(node.name)
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(default)
        self._body(node.body)
        self._names.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._names.append(node.name)
        self._body(node.body)
        self._names.pop()

    def visit_Module(self, node: ast.Module) -> None:
        self._body(node.body)

    def visit_Import(self, node: ast.Import) -> None:
        pass

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        pass

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace(node, "pass", "no error")

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass  # texts for people; positions inside them are unreliable before Python 3.12

    def visit_TypeAlias(self, node: ast.AST) -> None:
        pass

    # What is changed.

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for left, right, kind in zip(sides, sides[1:], node.ops, strict=False):
            self._operator(left, right, *_COMPARISONS[type(kind)], "comparison")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._operator(node.left, node.right, *_ARITHMETIC[type(node.op)], "arithmetic")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._operator(left, right, old, new, "logic")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            self._replace(node, f"({self._text(node.operand)})", "no sign")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._replace(node, str(not value), "constant")
        elif isinstance(value, int):
            self._replace(node, str(value + 1), "constant")
        elif isinstance(value, float):
            self._replace(node, repr(value * 2 if value else 1.0), "constant")
        elif isinstance(value, str) and value:
            self._replace(node, repr(f"{value}~"), "constant")

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if _name(node.value) != "Literal":  # a type
            self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not _is_none(node.value):
            self._replace(node.value, "None", "return")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        # Taking None apart would fail wherever the line is reached: no test is needed for that.
        taken_apart = isinstance(node.targets[0], ast.Tuple)
        if self._names and not taken_apart and not _is_none(node.value):
            self._replace(node.value, "None", "assignment")
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        old, new = _ARITHMETIC[type(node.op)]
        self._operator(node.target, node.value, f"{old}=", f"{new}=", "arithmetic")
        self._replace(node, "pass", "no statement")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._replace(node, "pass", "no statement")
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "continue", "loop")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "break", "loop")

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in _SWAPPED and isinstance(node.ctx, ast.Load):
            self._replace(node, _SWAPPED[node.id], "name")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.visit(node.value)
        if node.attr in _SWAPPED and isinstance(node.ctx, ast.Load):
            stop = self._stop(node)
            start = stop - len(node.attr.encode())
            self._change(start, stop, _SWAPPED[node.attr], "name")

    def visit_Call(self, node: ast.Call) -> None:
        words = _name(node.func)
        if words.endswith(("Error", "Warning", "TypeVar", "cast", "getLogger")):
            return  # the words of errors, and what only type checkers read
        given = [*node.args, *(keyword for keyword in node.keywords)]
        for keyword in node.keywords:
            if keyword.arg is not None and len(given) > 1:
                self._without(node, keyword)
        if words != "field":  # how a data class prints itself
            self.generic_visit(node)

    def _without(self, call: ast.Call, keyword: ast.keyword) -> None:
        """A call that leaves a named argument to its default."""
        start, stop = self._start(keyword), self._stop(keyword.value)
        after = re.match(rb"[\s)]*,[ \t]*", self._source[stop : self._stop(call)])
        if after and after.group().count(b")") == 0:
            self._change(start, stop + after.end(), "", "argument")
            return
        before = re.search(rb",\s*$", self._source[self._start(call) : start])
        if before:
            self._change(self._start(call) + before.start(), stop, "", "argument")

    def _negate(self, test: ast.expr) -> None:
        self._replace(test, f"not ({self._text(test)})", "condition")

    def _operator(self, left: ast.AST, right: ast.AST, old: str, new: str, kind: str) -> None:
        start, stop = self._stop(left), self._start(right)
        between = self._source[start:stop]
        pattern = re.escape(old).replace(r"\ ", r"\s+")
        if old[0].isalpha():
            pattern = rf"\b{pattern}\b"
        found = re.search(
            pattern.encode(), re.sub(rb"#[^\n]*", lambda m: b" " * len(m[0]), between)
        )
        if found:
            self._change(start + found.start(), start + found.end(), new, kind)

    def _replace(self, node: ast.AST, new: str, kind: str) -> None:
        self._change(self._start(node), self._stop(node), new, kind)

    def _change(self, start: int, stop: int, new: str, kind: str) -> None:
        self.changes.append((start, stop, new, ".".join(self._names), kind))

    def _body(self, body: list[ast.stmt]) -> None:
        for statement in body:
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            is_exported = isinstance(statement, ast.Assign) and "__all__" in map(
                _name, statement.targets
            )
            if not is_text and not is_exported:
                self.visit(statement)

    def _text(self, node: ast.AST) -> str:
        return self._source[self._start(node) : self._stop(node)].decode()

    def _start(self, node: ast.AST) -> int:
        return self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]

    def _stop(self, node: ast.AST) -> int:
        return self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]


def _name(node: ast.AST) -> str:
    return getattr(node, "id", None) or getattr(node, "attr", "")


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
