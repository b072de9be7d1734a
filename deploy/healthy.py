"""``python healthy.py URL``: status 0 if a server answers with status 200; images have no curl."""

import sys
import urllib.error
import urllib.request

try:
    with urllib.request.urlopen(sys.argv[1], timeout=4) as answer:  # noqa: S310 the image's own
        sys.exit(answer.status != 200)
except (OSError, urllib.error.URLError) as error:
    sys.exit(f"{sys.argv[1]}: {error}")
