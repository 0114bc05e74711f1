/**
 * A real ResourceManager under virtual time: nodes and application masters are played through the
 * ResourceManager's own services, whatever scheduler class it runs.
 */
package org.gandiva.yarn.replay;
