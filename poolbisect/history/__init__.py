"""Where the subject's sources come from: released wheels and commits, read without installing."""
