"""The results database: SQLite in, pandas frames out."""

from poolbisect.store.database import Store
from poolbisect.store.importing import Imported, import_runs, record_run

FILE_NAME = "poolbisect.sqlite"
"""What the database is called in a folder of reports."""

__all__ = ["FILE_NAME", "Imported", "Store", "import_runs", "record_run"]
