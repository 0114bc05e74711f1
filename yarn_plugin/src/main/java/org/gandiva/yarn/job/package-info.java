/**
 * What a training job is: its keys, its tasks, and the names that client, master and workers share.
 */
package org.gandiva.yarn.job;
