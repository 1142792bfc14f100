"""One function's metrics, head against base at equal inputs."""
