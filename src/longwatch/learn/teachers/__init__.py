"""Teachers: who answers the tasks that the student never solved (L9). What they say is graded like the student's answers.

Read in this order: `settings` (the table `[teacher]`), `provenance` (where an answer came from), `budget` and `purse` (what it
may cost; pure, and on the disk), `endpoint` (what is sent and what comes back; pure), `call` (one request), `asking` (all of
them), `helping` (the teacher that the settings name).
"""
