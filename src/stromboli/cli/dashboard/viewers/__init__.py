"""Who looks at the dashboard, how he is known, and what he may see."""
