/** The submission client: {@code yarn jar gandiva-client.jar}. */
package org.gandiva.yarn.job.client;
