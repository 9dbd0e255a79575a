"""Whether the machine may be used now (L34).

`judging` decides, from `readings` and the settings alone; `machine` reads what this machine reports, each field of it
optional; `turns` is the lock that all watches of the machine share. `Gate` asks before a step begins, and `guarded`
while it runs. It stands here and not in the kernel, because what it asks is what an accelerator's user must know.
"""
