"""What is measured: how it is started, known to be ready, reached, read and stopped. Only here are a JVM's
flags, the service's ``ready:`` line and our jars known."""
