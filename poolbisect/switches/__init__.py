"""Which server flags make the difference: a bisect over configurations of one subject.

`isolation` and `search` are pure and know switches by name only; an oracle (`launch`) starts the
subject with some switches on; `referee` judges and `ledger` remembers; `workflow` joins them.
"""
