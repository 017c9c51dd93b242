package holdfast;

/** The lock has ended while its holder had it: somebody else may have been inside meanwhile. */
public final class LockLostException extends IllegalStateException {
    private static final long serialVersionUID = 1;
    /** A word of holdfast-protocol(7), such as forced; "expired": not confirmed in time; "notheld". */
    public final String reason;

    LockLostException(String name, long token, String reason) {
        super("lock '" + name + "' under token " + token + " is lost: " + reason);
        this.reason = reason;
    }
}
