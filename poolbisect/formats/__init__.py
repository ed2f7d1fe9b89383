"""Score files, ours and other people's, read into one model. One file per format."""

from poolbisect.formats.reading import parse_bytes, read_score
from poolbisect.formats.score_file import Choice, ScoreFile

__all__ = ["Choice", "ScoreFile", "parse_bytes", "read_score"]
