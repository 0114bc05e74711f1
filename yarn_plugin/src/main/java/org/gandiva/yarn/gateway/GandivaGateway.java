package org.gandiva.yarn.gateway;

/** What the core process calls. */
public final class GandivaGateway {}
