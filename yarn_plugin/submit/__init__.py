"""`gandiva submit`: a training job to a cluster, followed to its end."""
