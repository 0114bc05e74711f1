/**
 * The core as the ResourceManager sees it: whether it is there, and the child process that it is.
 */
package org.gandiva.yarn.core;
