import org.apache.solr.client.solrj.embedded.JettySolrRunner;

/** A Solr server in one process, on the loopback interface: java SolrServer.java HOME PORT. */
public class SolrServer {
  public static void main(String[] arguments) throws Exception {
    new JettySolrRunner(arguments[0], "/solr", Integer.parseInt(arguments[1])).start();
    Thread.currentThread().join();
  }
}
