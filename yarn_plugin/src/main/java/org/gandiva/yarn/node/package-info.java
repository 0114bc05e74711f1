/** In a NodeManager: the auxiliary service that keeps the node's agent running. */
package org.gandiva.yarn.node;
