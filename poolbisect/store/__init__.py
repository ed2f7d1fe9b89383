"""The results database: SQLite in, pandas frames out."""

from poolbisect.store.database import Store
from poolbisect.store.importing import Imported, import_runs, record_run

__all__ = ["Imported", "Store", "import_runs", "record_run"]
