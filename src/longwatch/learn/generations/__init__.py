"""Source generations: everything that an experiment is bound to, besides its tasks and its champion (L29, L30).

Read in this order: `values` (what a generation is, and what differs between two), `present` (the one that is here now),
`archive` (how one is kept, with its sources), `binding` (an experiment is bound to one) and `entering` (a step begins:
nothing has drifted, or it goes on with the archived sources). Why it is like this stands in docs/adr/0009.
"""
