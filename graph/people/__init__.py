"""What users do about other users: follow, mute, block, and put them into lists."""
