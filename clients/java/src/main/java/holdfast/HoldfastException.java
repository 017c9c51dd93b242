package holdfast;

/** A broker has refused a request, or none could be reached. */
public class HoldfastException extends RuntimeException {
    private static final long serialVersionUID = 1;

    HoldfastException(String message) {
        super(message);
    }

    /** The first word: NOQUORUM, DEADLOCK, KIND, LIMIT, NOPERM and others of holdfast-protocol(7); NOBROKER, CLOSED. */
    public String code() {
        return getMessage().split(" ", 2)[0];
    }

    /** Somebody else had the lock for as long as the request was to wait. */
    public static final class NotGranted extends HoldfastException {
        private static final long serialVersionUID = 1;

        NotGranted(String name) {
            super("NOTGRANTED '" + name + "' was not granted in time");
        }
    }

    /** The connection has ended; the request may have been carried out. */
    static final class Broken extends HoldfastException {
        private static final long serialVersionUID = 1;

        Broken() {
            super("BROKEN the connection to the broker ended");
        }
    }
}
