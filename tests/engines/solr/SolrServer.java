/** Solr in one process, on the loopback interface: java SolrServer.java RUNNER HOME PORT. */
public class SolrServer {
  public static void main(String[] arguments) throws Exception {
    // Its package depends on the version of Solr.
    Class<?> runner = Class.forName(arguments[0]);
    Object server =
        runner
            .getConstructor(String.class, String.class, int.class)
            .newInstance(arguments[1], "/solr", Integer.parseInt(arguments[2]));
    runner.getMethod("start").invoke(server);
    Thread.currentThread().join();
  }
}
