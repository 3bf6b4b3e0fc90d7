package codeanatomy;

import java.io.BufferedInputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Collections;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A data source whose rows are those of an Arrow stream file at the moment a task opens it, not when the plan was made.
 *
 * <p>Written in the Java that Janino compiles: no lambdas, and raw types where a generic method would need a bridge.
 */
public class SlotSource implements TableProvider {
  public boolean supportsExternalMetadata() {
    return true;
  }

  public StructType inferSchema(CaseInsensitiveStringMap options) {
    throw new UnsupportedOperationException("a slot is read with the schema it was made with");
  }

  public Transform[] inferPartitioning(CaseInsensitiveStringMap options) {
    return new Transform[0];
  }

  public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
    return new Slot(schema, (String) properties.get("path"));
  }

  /** The table; its scan builder, scan and batch hold nothing else than the columns that are read. */
  public static class Slot
      implements Table, SupportsRead, SupportsPushDownRequiredColumns, SupportsReportStatistics, Batch {
    private StructType schema;
    private final String path;

    public Slot(StructType schema, String path) {
      this.schema = schema;
      this.path = path;
    }

    public String name() {
      return "slot " + path;
    }

    public StructType schema() {
      return schema;
    }

    public Set capabilities() {
      return Collections.singleton(TableCapability.BATCH_READ);
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return new Slot(schema, path);
    }

    /** Leaves columns out, but no fields of nested ones: those are read by their position. */
    public void pruneColumns(StructType required) {
      StructType whole = new StructType();
      String[] names = required.fieldNames();
      for (int i = 0; i < names.length; i++) {
        whole = whole.add(schema.fields()[schema.fieldIndex(names[i])]);
      }
      schema = whole;
    }

    public Scan build() {
      return this;
    }

    public StructType readSchema() {
      return schema;
    }

    public Statistics estimateStatistics() {
      return new SmallSize();
    }

    public Batch toBatch() {
      return this;
    }

    public InputPartition[] planInputPartitions() {
      return new InputPartition[] {new Rows(schema.fieldNames(), path)};
    }

    public PartitionReaderFactory createReaderFactory() {
      return new Readers();
    }
  }

  /** The same for all slots, so that a plan does not depend on the rows that are there when it is made. */
  public static class SmallSize implements Statistics {
    public OptionalLong sizeInBytes() {
      return OptionalLong.of(1024L);
    }

    public OptionalLong numRows() {
      return OptionalLong.empty();
    }
  }

  /** All rows of a slot: one partition. */
  public static class Rows implements InputPartition {
    final String[] columns;
    final String path;

    Rows(String[] columns, String path) {
      this.columns = columns;
      this.path = path;
    }
  }

  public static class Readers implements PartitionReaderFactory {
    public boolean supportColumnarReads(InputPartition rows) {
      return true;
    }

    public PartitionReader createReader(InputPartition rows) {
      throw new UnsupportedOperationException("slots are read in batches");
    }

    public PartitionReader createColumnarReader(InputPartition rows) {
      return new Reader((Rows) rows);
    }
  }

  public static class Reader implements PartitionReader {
    private final String[] columns;
    private final BufferAllocator allocator;
    private final ArrowStreamReader stream;
    private ColumnarBatch batch;

    Reader(Rows rows) {
      columns = rows.columns;
      try {
        FileInputStream file = new FileInputStream(rows.path);
        allocator = ArrowUtils.rootAllocator().newChildAllocator("slot", 0L, Long.MAX_VALUE);
        stream = new ArrowStreamReader(new BufferedInputStream(file, 1 << 16), allocator);
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }

    public boolean next() throws IOException {
      if (!stream.loadNextBatch()) {
        return false;
      }
      VectorSchemaRoot root = stream.getVectorSchemaRoot();
      ColumnVector[] vectors = new ColumnVector[columns.length];
      for (int i = 0; i < columns.length; i++) {
        vectors[i] = new ArrowColumnVector(root.getVector(columns[i]));
      }
      batch = new ColumnarBatch(vectors, root.getRowCount());
      return true;
    }

    public Object get() {
      return batch;
    }

    public void close() throws IOException {
      stream.close();
      allocator.close();
    }
  }
}
