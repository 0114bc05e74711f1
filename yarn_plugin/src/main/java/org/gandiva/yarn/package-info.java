/** The scheduler plug-in: GPU placement decided outside, applied inside the ResourceManager. */
package org.gandiva.yarn;
