"""Audits: base and champion on public benchmarks, greedy, one attempt each. They report and never decide (L22 to L25).

Read in this order: `benchmarks` (what is asked), `records` (what one student said, and whether it counts), `running` (the
step). Nothing that trains, compares or decides imports this package: `lint-imports` holds that.
"""

from longwatch.learn.auditing.running import perform

__all__ = ["perform"]
