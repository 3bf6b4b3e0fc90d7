"""The store: Delta tables, digests, builds, pins, retention. It never knows what the tables mean.

Importing it to read a state starts no Spark; only functions that take or give a DataFrame import pyspark.
"""

from codeanatomy.store.builds import (
    ROLLBACK,
    BuildRecord,
    find_build,
    latest_build,
    list_builds,
    new_build_id,
    publish,
    rollback_build,
)
from codeanatomy.store.datafiles import CollectedRows, WorkerRows, collected, with_row_hashes
from codeanatomy.store.digests import NO_ROWS, SetDigest, total
from codeanatomy.store.layout import BUCKET, bucket_count_for, bucket_of
from codeanatomy.store.lease import Lease, hold_lease
from codeanatomy.store.location import StateLocation
from codeanatomy.store.retention import GcReport, collect_garbage
from codeanatomy.store.state import State, create_state, open_state, state_exists
from codeanatomy.store.tables import (
    Emptied,
    Replaced,
    TablePin,
    WrittenTable,
    append_rows,
    data_files,
    open_arrow,
    pin_latest,
    read_arrow,
    read_table,
    replace_rows,
)

__all__ = [
    "BUCKET",
    "NO_ROWS",
    "ROLLBACK",
    "BuildRecord",
    "CollectedRows",
    "Emptied",
    "GcReport",
    "Lease",
    "Replaced",
    "SetDigest",
    "State",
    "StateLocation",
    "TablePin",
    "WorkerRows",
    "WrittenTable",
    "append_rows",
    "bucket_count_for",
    "bucket_of",
    "collect_garbage",
    "collected",
    "create_state",
    "data_files",
    "find_build",
    "hold_lease",
    "latest_build",
    "list_builds",
    "new_build_id",
    "open_arrow",
    "open_state",
    "pin_latest",
    "publish",
    "read_arrow",
    "read_table",
    "replace_rows",
    "rollback_build",
    "state_exists",
    "total",
    "with_row_hashes",
]
