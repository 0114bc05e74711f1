/** The bridge to the core process: JSON in, JSON out; the only package that imports py4j. */
package org.gandiva.yarn.gateway;
