import pandas as pd
import pytest

from kvstudy.analyse import schema
from kvstudy.errors import FormatError


@pytest.mark.parametrize("table", schema.TABLES)
def test_an_empty_table_has_the_columns_and_types_of_a_full_one(table):
    frame = schema.empty(table)
    assert list(frame.columns) == schema.names(table)
    assert frame.dtypes.astype(str).tolist() == [column.dtype for column in schema.TABLES[table]]


@pytest.mark.parametrize("table", schema.TABLES)
def test_a_table_survives_parquet_with_its_types(table, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / f"{table}.parquet"
    pq.write_table(
        pa.Table.from_pandas(schema.empty(table), schema=schema.arrow_schema(table), preserve_index=False),
        path,
    )
    read = schema.conform(table, pq.read_table(path).to_pandas())
    pd.testing.assert_frame_equal(read, schema.empty(table))


def test_a_missing_column_is_named_and_never_filled_in():
    with pytest.raises(FormatError, match="columns are missing: verdict"):
        schema.conform("validity", schema.empty("validity").drop(columns="verdict"))


def test_no_column_stands_twice_in_a_table():
    for table in schema.TABLES:
        assert len(set(schema.names(table))) == len(schema.names(table))
