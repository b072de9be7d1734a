"""HTML reports and the SVG charts in them: light or dark, nothing loaded from elsewhere."""
