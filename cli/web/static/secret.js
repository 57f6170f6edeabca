// The page's own secret, without which the server answers nothing. A browser sends the cookie to every port of this machine;
// the secret stays in the storage of the page's origin, which no page of another port can read.

const given = /^#secret=([\w-]+)$/.exec(location.hash);
if (given?.[1]) {
  localStorage.setItem("secret", given[1]);
  history.replaceState(null, "", location.pathname);
}

/** Return the secret; "": this browser has none. Another tab may have stored the secret of a new server. */
export function secret() {
  return localStorage.getItem("secret") ?? "";
}

/** Return the header that every request needs. @returns {Record<string, string>} */
export function own() {
  return { "X-Editledger-Secret": secret() };
}
