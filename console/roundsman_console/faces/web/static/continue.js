// Goes on from a link of another site: from this page, the browser sends the console's cookie.
"use strict";

document.forms[0].requestSubmit();
