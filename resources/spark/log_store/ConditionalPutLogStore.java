package strandline;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Commits a version of a Delta table to S3 by a conditional put, so that of several drivers exactly one takes it (docs/explanation/adr/0020).
 *
 * <p>An answer may be lost, and a request may be sent twice: then the store refuses what it has taken already. Each commit carries an id
 * of its own in its object's metadata, and after any failure the object tells who made it.
 */
public class ConditionalPutLogStore extends S3SingleDriverLogStore {
  private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";
  private static final String WITHOUT_PROBES = "fs.s3a.create.performance";
  private static final String ID = "strandline-commit";
  private static final int TRIES = 3;

  public ConditionalPutLogStore(Configuration conf) {
    super(conf);
  }

  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration conf) throws IOException {
    if (overwrite) {
      super.write(path, actions, true, conf);
      return;
    }
    FileSystem fs = path.getFileSystem(conf);
    byte[] content = joined(actions);
    String id = UUID.randomUUID().toString();
    IOException failure = null;
    for (int tries = 0; tries < TRIES; tries++) {
      try {
        put(fs, path, content, id);
        return;
      } catch (IOException error) {
        failure = error;
      } catch (UncheckedIOException error) {
        failure = error.getCause();
      }
      byte[] owner = owner(fs, path, failure);
      if (owner != null && id.equals(new String(owner, StandardCharsets.UTF_8))) {
        return;
      }
      if (owner != null) {
        FileAlreadyExistsException taken = new FileAlreadyExistsException(path.toString());
        taken.initCause(failure);
        throw taken;
      }
    }
    throw failure;
  }

  /** All of it is in memory: a put that was refused for a passing reason is sent again. */
  private static byte[] joined(Iterator<String> actions) {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    while (actions.hasNext()) {
      content.writeBytes(actions.next().getBytes(StandardCharsets.UTF_8));
      content.write('\n');
    }
    return content.toByteArray();
  }

  /** Fails before anything is sent if the file system cannot create conditionally. */
  private static void put(FileSystem fs, Path path, byte[] content, String id) throws IOException {
    FSDataOutputStream stream =
        (FSDataOutputStream)
            fs.createFile(path)
                .overwrite(true)
                .recursive()
                .must(CONDITIONAL, true)
                .must("fs.s3a.create.header." + ID, id)
                .opt(WITHOUT_PROBES, true)
                .build();
    try {
      stream.write(content);
    } catch (IOException | RuntimeException error) {
      stream.abort(); // closed, it would send what was written so far
      throw error;
    }
    stream.close();
  }

  /**
   * Returns the id of the commit that has the version; empty if another writer made it, null if the version is free.
   *
   * @throws IOException the failure of the put, if the store does not tell
   */
  private static byte[] owner(FileSystem fs, Path path, IOException failure) throws IOException {
    try {
      byte[] id = fs.getXAttrs(path).get("header." + ID);
      return id == null ? new byte[0] : id;
    } catch (FileNotFoundException error) {
      return null;
    } catch (IOException error) {
      failure.addSuppressed(error);
      throw failure;
    }
  }
}
