package org.gandiva.yarn.gateway;

/**
 * A request that cannot be served, with the kind the caller branches on and one line for people.
 */
public final class ProtocolException extends Exception {
  private static final long serialVersionUID = 1L;

  private final String kind;

  /**
   * Creates the exception.
   *
   * @param kind upper-case word of the protocol, as BAD_REQUEST or STALE_EPOCH
   * @param message one line that says what was found and what was expected
   */
  public ProtocolException(String kind, String message) {
    super(message);
    this.kind = kind;
  }

  /** Returns the kind of the refusal. */
  public String kind() {
    return kind;
  }

  /** Returns an exception for a request whose content is wrong. */
  public static ProtocolException badRequest(String message) {
    return new ProtocolException("BAD_REQUEST", message);
  }
}
