"""Mutation testing: would the tests notice if the code were wrong?

``python -m tests.mutation MODULE...`` changes a module in one small place at a time (``<`` becomes
``<=``, a statement goes, a constant is another) and runs the tests that reach that place. A mutant
that no test fails for has survived: either a test is missing, or the change cannot be observed and
belongs into ``equivalent.toml`` with the reason.

Why none of the tools that exist: mutmut puts all mutants of a function behind a switch that it
looks up in the environment at each call, which Numba cannot compile, leaves out decorated functions
(all compiled loops and all measures), and takes no sample. Cosmic Ray starts the whole test command
for each mutant, knows no coverage, and would take most of a minute each. Here most take a
second or two of processor time:

- A process for each area and worker loads the package and collects the tests once (``serving``);
  a child that it forks gives the changed functions their new code (``in_place``). A change outside
  of functions (a constant, a default) is loaded by a process of its own, which takes seconds.
  A function that runs both when modules are loaded and in tests is changed for the latter alone.
- Coverage is measured once per test file and source tree, with a context per test
  (``coverage_map``); a mutant is run against the tests that reach its lines, fastest first, until
  a budget of seconds is spent. Mutants that survive with tests left over count as "cut".
- Tests that fail without a mutant, are skipped or are slow are left out, and counted. So is a test
  that noticed a mutant and fails by itself without it.
- Each worker has a copy of the project, so that the commands that tests start are mutants too.
- Modules with compiled loops are measured with ``NUMBA_DISABLE_JIT=1``: coverage sees their lines,
  and no mutant waits for the compiler or meets compiled code of another.
"""
