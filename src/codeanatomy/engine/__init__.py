"""The Spark session, its runtime profiles and its settings; knows nothing about code graphs."""
