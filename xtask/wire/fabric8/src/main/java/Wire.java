import com.sun.management.HotSpotDiagnosticMXBean;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * The fabric8 side of {@code cargo xtask bench wire}: a shared informer of pods with its defaults, which has an index by
 * namespace, in JSON. xtask/wire/protocol.rs describes arguments and lines. In addition, the program collects garbage at
 * the line {@code collect}, and then prints {@code collected}.
 */
final class Wire {
    private Wire() {}

    public static void main(String[] args) {
        try {
            run(args);
        } catch (Exception error) {
            error.printStackTrace();
            // The threads of the HTTP client would keep the process alive.
            System.exit(1);
        }
    }

    private static void run(String[] args) throws Exception {
        String server = args[0];
        boolean isList = args[2].equals("list");
        long objects = Long.parseLong(args[3]);
        int handlers = Integer.parseInt(args[4]);
        Path times = args.length > 6 ? Path.of(args[6]) : null;
        Meter meter = new Meter(Long.parseLong(args[5]), objects * handlers, times);

        SharedIndexInformer<Pod> informer = informer(server, isList);
        CountDownLatch synced = new CountDownLatch(handlers);
        for (int handler = 0; handler < handlers; handler++) {
            informer.addEventHandler(new Handler(handler, meter, synced));
        }
        System.out.println("ready");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        input.readLine();
        new Thread(() -> readLines(input)).start();
        informer.start().toCompletableFuture().get();
        synced.await();
        System.out.println("synced " + informer.getStore().listKeys().size());
        meter.done.await();
        meter.writeTimes();
        System.out.println("done " + meter.received.get());
    }

    private static SharedIndexInformer<Pod> informer(String server, boolean isList) {
        // Without `Config.empty`, the client would read the user's kubeconfig. Streaming lists are off by default.
        Config config = new ConfigBuilder(Config.empty()).withMasterUrl(server).withWatchList(!isList).build();
        // The argument is the period of resyncs; 0 disables them.
        return new KubernetesClientBuilder().withConfig(config).build().pods().inAnyNamespace().runnableInformer(0);
    }

    private static void readLines(BufferedReader input) {
        input.lines().filter("collect"::equals).forEach(line -> {
            collect();
            System.out.println("collected");
        });
        System.exit(0);
    }

    /** Collects garbage, and returns free memory to the operating system. */
    private static void collect() {
        HotSpotDiagnosticMXBean options = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
        // With the default ratio, most of the memory would remain with the JVM.
        options.setVMOption("MinHeapFreeRatio", "0");
        options.setVMOption("MaxHeapFreeRatio", "0");
        System.gc();
        // G1 returns memory in the background, with pauses.
        LockSupport.parkNanos(2_000_000_000L);
        // The defaults.
        options.setVMOption("MaxHeapFreeRatio", "70");
        options.setVMOption("MinHeapFreeRatio", "40");
    }

    /** Passes updates to the meter. The informer calls all handlers in turn on one thread. */
    private record Handler(int number, Meter meter, CountDownLatch synced) implements ResourceEventHandler<Pod> {
        @Override
        public void onList(String resourceVersion, boolean remainedEmpty) {
            // The handler has received all pods of the list.
            synced.countDown();
        }

        @Override
        public void onAdd(Pod pod) {}

        @Override
        public void onUpdate(Pod old, Pod pod) {
            meter.observe(number, Long.parseLong(pod.getMetadata().getResourceVersion()));
        }

        @Override
        public void onDelete(Pod pod, boolean unknownFinalState) {}
    }

    /** Counts the events of all handlers, and records the times of the first handler's events. */
    private static final class Meter {
        private final long lastPass;
        private final AtomicLong received = new AtomicLong();
        private final AtomicLong missing;
        private final CountDownLatch done = new CountDownLatch(1);
        /** The file for the times; {@code null} if they are not recorded. */
        private final Path path;
        /** Version and time of each event. The first {@code length} numbers are used. */
        private long[] times = new long[1 << 16];
        private int length;

        Meter(long lastPass, long missing, Path path) {
            this.lastPass = lastPass;
            this.missing = new AtomicLong(missing);
            this.path = path;
        }

        void observe(int handler, long version) {
            received.incrementAndGet();
            if (handler == 0 && path != null) {
                if (length == times.length) {
                    times = Arrays.copyOf(times, 2 * length);
                }
                times[length++] = version;
                // On Linux, HotSpot reads the clock that all processes share (CLOCK_MONOTONIC).
                times[length++] = System.nanoTime();
            }
            if (version >= lastPass && missing.decrementAndGet() == 0) {
                done.countDown();
            }
        }

        void writeTimes() throws IOException {
            if (path != null) {
                ByteBuffer bytes = ByteBuffer.allocate(length * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
                bytes.asLongBuffer().put(times, 0, length);
                Files.write(path, bytes.array());
            }
        }
    }
}
