package org.gandiva.yarn.replay;

import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * What steps cost, for benchmarks: time of the one thread that plays nodes and masters and runs the
 * ResourceManager, without the reading and writing of the driver's JSON. Nothing decides by it.
 */
final class Spending {
  private static final double NANOS_PER_S = 1e9;

  /** Work that may fail. */
  @FunctionalInterface
  interface Work {
    void run() throws Exception;
  }

  private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
  private long cpuNs;
  private long wallNs;

  void during(Work work) throws Exception {
    long cpuBefore = threads.getCurrentThreadCpuTime();
    long wallBefore = System.nanoTime();
    try {
      work.run();
    } finally {
      cpuNs += threads.getCurrentThreadCpuTime() - cpuBefore;
      wallNs += System.nanoTime() - wallBefore;
    }
  }

  /** Writes what was spent since the start; the JVM's own figure has its collector and compiler. */
  void write(ObjectNode reply) {
    OperatingSystemMXBean system =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    reply.put("steps_cpu_s", cpuNs / NANOS_PER_S);
    reply.put("steps_wall_s", wallNs / NANOS_PER_S);
    reply.put("jvm_cpu_s", system.getProcessCpuTime() / NANOS_PER_S);
  }
}
