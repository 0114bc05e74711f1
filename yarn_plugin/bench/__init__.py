"""What `gandiva bench rm` measures: a real ResourceManager's allocations, under Hadoop's scheduler and under ours."""
