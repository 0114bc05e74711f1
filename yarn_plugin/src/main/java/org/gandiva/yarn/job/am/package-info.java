/** The application master of a training job: its gang, its rendezvous, its restarts and moves. */
package org.gandiva.yarn.job.am;
