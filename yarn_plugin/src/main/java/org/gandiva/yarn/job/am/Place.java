package org.gandiva.yarn.job.am;

/** A container and the host it is on. */
final class Place {
  private final String containerId;
  private final String host;

  Place(String containerId, String host) {
    this.containerId = containerId;
    this.host = host;
  }

  String containerId() {
    return containerId;
  }

  String host() {
    return host;
  }

  @Override
  public String toString() {
    return containerId + " on " + host;
  }
}
