import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.CodeTransform;
import java.lang.classfile.MethodModel;
import java.lang.constant.ClassDesc;
import java.lang.constant.MethodTypeDesc;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/// Plants a change of known size into the service as it is shipped: every GET and every write of its store burns so
/// many nanoseconds, and every so manieth waits.
///
/// `java -javaagent:planted.jar=burn=900,every=50,wait=1000000 -jar kv-service.jar …`; with `burn=0` nothing but the
/// call itself is added, so that both sides of a comparison have it.
///
/// A service whose requests do not come by what was planted ends with code 3 and says so: a change that is not there
/// would be called *the same*, and rightly.
public final class PlantedAgent {
    private static final String STORE = "kv/lsm/LsmStore";
    private static final Set<String> CALLED_BY_REQUESTS = Set.of("get([B[BZ)[B", "tryBegin([B[B)Lkv/lsm/PendingWrite;");
    private static final int NOTHING_IS_PLANTED = 3;

    private static long burnNanos;
    private static int every;
    private static long waitNanos;
    private static final AtomicInteger calls = new AtomicInteger();
    private static boolean isReached;

    private PlantedAgent() {}

    public static void premain(String arguments, Instrumentation instrumentation) {
        for (String argument : arguments.split(",")) {
            String[] parts = argument.split("=");
            long value = Long.parseLong(parts[1]);
            switch (parts[0]) {
                case "burn" -> burnNanos = value;
                case "every" -> every = (int) value;
                case "wait" -> waitNanos = value;
                default -> throw new IllegalArgumentException("unknown: " + argument);
            }
        }
        instrumentation.addTransformer(new Planting());
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            if (!isReached) {
                end("no request came by " + CALLED_BY_REQUESTS);
            }
        }));
    }

    private static void end(String why) {
        System.err.println("error: nothing is planted: " + why);
        Runtime.getRuntime().halt(NOTHING_IS_PLANTED);
    }

    /// Called at the beginning of each planted method.
    public static void act() {
        isReached = true;
        if (burnNanos > 0) {
            long end = System.nanoTime() + burnNanos;
            while (System.nanoTime() < end) {
                Thread.onSpinWait();
            }
        }
        if (every > 0 && calls.incrementAndGet() % every == 0) {
            LockSupport.parkNanos(waitNanos);
        }
    }

    private static final class Planting implements ClassFileTransformer {
        @Override
        public byte[] transform(
                ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
            if (!STORE.equals(name)) {
                return null;
            }
            CodeTransform calling = new CodeTransform() {
                @Override
                public void atStart(CodeBuilder code) {
                    code.invokestatic(ClassDesc.of("PlantedAgent"), "act", MethodTypeDesc.ofDescriptor("()V"));
                }

                @Override
                public void accept(CodeBuilder code, java.lang.classfile.CodeElement element) {
                    code.with(element);
                }
            };
            ClassFile file = ClassFile.of();
            var parsed = file.parse(bytes);
            long found = parsed.methods().stream().filter(Planting::isCalledByRequests).count();
            if (found != CALLED_BY_REQUESTS.size()) {
                end(CALLED_BY_REQUESTS + " are not all there: " + found);
            }
            return file.transformClass(
                    parsed, ClassTransform.transformingMethodBodies(Planting::isCalledByRequests, calling));
        }

        private static boolean isCalledByRequests(MethodModel method) {
            return CALLED_BY_REQUESTS.contains(method.methodName().stringValue() + method.methodType().stringValue());
        }
    }
}
