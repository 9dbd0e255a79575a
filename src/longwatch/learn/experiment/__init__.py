"""One experiment: collect verified answers, train on them, evaluate on dev, in rounds (L8 to L14).

Read in this order: `rounds` (the story), `batches` (what each round asks, and when they end), `collecting` and
`examples` (what is taught), `replay` (what is taught again), `fitting` (the training), `evaluating` and `nominating`
(who is proposed), `meter` (for how long).
"""

from longwatch.learn.experiment.rounds import perform

__all__ = ["perform"]
